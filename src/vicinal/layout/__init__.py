"""Graph and first places -> places: the sampled layout of UMAP and LargeVis, the full layout of t-SNE."""

from vicinal.layout.full import FullLayout as FullLayout
from vicinal.layout.full import Phase as Phase
from vicinal.layout.kernel import Kernel as Kernel
from vicinal.layout.kernel import fit_ab as fit_ab
from vicinal.layout.sampled import Layout as Layout
from vicinal.layout.schedule import Schedule as Schedule
