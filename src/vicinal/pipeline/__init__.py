"""The stages composed as free functions: fit a map, place rows in it, update and invert it.

Maps are composed by :mod:`vicinal.pipeline.compose` and aligned by :mod:`vicinal.pipeline.align`.

>>> from vicinal import fit_ab, pipeline
>>> from vicinal.layout.forces import Forces
>>> from vicinal.neighbors.training_data import TrainingRows
>>> import numpy as np
>>> rows = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
>>> recipe = pipeline.Recipe(pipeline.FuzzyAffinity(n_neighbors=10), pipeline.SampledPlan(Forces(fit_ab())))
>>> fitted = pipeline.fit(pipeline.ArrayExecutor(TrainingRows(rows), recipe, seed=42))
>>> pipeline.place(fitted, rows[:3] + 0.1).shape
(3, 2)
>>> pipeline.update(fitted, rows[:50] + 0.1).embedding.shape
(250, 2)
"""

from vicinal.pipeline.fit import STEPS as STEPS
from vicinal.pipeline.fit import ArrayExecutor as ArrayExecutor
from vicinal.pipeline.fit import Executor as Executor
from vicinal.pipeline.fit import fit as fit
from vicinal.pipeline.fit import update as update
from vicinal.pipeline.fitted import FitReport as FitReport
from vicinal.pipeline.fitted import FittedMap as FittedMap
from vicinal.pipeline.place import inverse_rows as inverse_rows
from vicinal.pipeline.place import memberships as memberships
from vicinal.pipeline.place import place as place
from vicinal.pipeline.recipe import DensityPlan as DensityPlan
from vicinal.pipeline.recipe import EntropicAffinity as EntropicAffinity
from vicinal.pipeline.recipe import FullPlan as FullPlan
from vicinal.pipeline.recipe import FuzzyAffinity as FuzzyAffinity
from vicinal.pipeline.recipe import LargeVisPlan as LargeVisPlan
from vicinal.pipeline.recipe import Recipe as Recipe
from vicinal.pipeline.recipe import Refused as Refused
from vicinal.pipeline.recipe import SampledPlan as SampledPlan
from vicinal.pipeline.row_options import Pins as Pins
from vicinal.pipeline.row_options import RowOptions as RowOptions
