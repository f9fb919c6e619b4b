"""The stages composed as free functions: fit a map, place rows in it, update, compose, align and invert it.

>>> from vicinal import fit_ab, maps
>>> from vicinal.layout.forces import Forces
>>> from vicinal.neighbors.training_data import TrainingRows
>>> import numpy as np
>>> rows = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
>>> recipe = maps.Recipe(maps.FuzzyAffinity(n_neighbors=10), maps.SampledPlan(Forces(fit_ab())))
>>> fitted = maps.fit(maps.FitInputs(TrainingRows(rows), recipe, seed=42))
>>> maps.place(fitted, rows[:3] + 0.1).shape
(3, 2)
>>> maps.update(fitted, rows[:50] + 0.1).embedding.shape
(250, 2)
"""

from vicinal.maps.aligned import AlignedMaps as AlignedMaps
from vicinal.maps.aligned import extend_aligned as extend_aligned
from vicinal.maps.aligned import fit_aligned as fit_aligned
from vicinal.maps.composition import ComposedMap as ComposedMap
from vicinal.maps.composition import compose as compose
from vicinal.maps.composition import place_composed as place_composed
from vicinal.maps.fitted import FitReport as FitReport
from vicinal.maps.fitted import FittedMap as FittedMap
from vicinal.maps.fitting import FitInputs as FitInputs
from vicinal.maps.fitting import fit as fit
from vicinal.maps.fitting import prepare as prepare
from vicinal.maps.inversion import inverse_rows as inverse_rows
from vicinal.maps.placement import memberships as memberships
from vicinal.maps.placement import place as place
from vicinal.maps.plans import FullPlan as FullPlan
from vicinal.maps.plans import LargeVisPlan as LargeVisPlan
from vicinal.maps.plans import SampledPlan as SampledPlan
from vicinal.maps.recipe import DensityPlan as DensityPlan
from vicinal.maps.recipe import EntropicAffinity as EntropicAffinity
from vicinal.maps.recipe import FuzzyAffinity as FuzzyAffinity
from vicinal.maps.recipe import Recipe as Recipe
from vicinal.maps.row_facts import Pins as Pins
from vicinal.maps.row_facts import RowFacts as RowFacts
from vicinal.maps.updating import update as update
