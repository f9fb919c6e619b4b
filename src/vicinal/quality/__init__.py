"""How faithful a map is to its data, and the losses of the survey (:mod:`vicinal.quality.losses`)."""

from vicinal.quality.measures import continuity as continuity
from vicinal.quality.measures import distance_correlation as distance_correlation
from vicinal.quality.measures import knn_accuracy as knn_accuracy
from vicinal.quality.measures import local_scores as local_scores
from vicinal.quality.measures import missing_labels as missing_labels
from vicinal.quality.measures import neighbor_recall as neighbor_recall
from vicinal.quality.measures import trustworthiness as trustworthiness
from vicinal.quality.reliability import Reliability as Reliability
from vicinal.quality.reliability import TornEdges as TornEdges
from vicinal.quality.report import QualityReport as QualityReport
from vicinal.quality.report import report as report

__all__ = [
    "QualityReport",
    "Reliability",
    "TornEdges",
    "continuity",
    "distance_correlation",
    "knn_accuracy",
    "local_scores",
    "neighbor_recall",
    "report",
    "trustworthiness",
]
