"""Graph -> first places: spectral, principal components, random; medoids of neighbors for unseen rows."""

from vicinal.initialize.start import pca_start as pca_start
from vicinal.initialize.start import random_start as random_start
from vicinal.initialize.start import spectral_start as spectral_start
