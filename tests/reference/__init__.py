"""The survey in float64 NumPy: the standard that the compiled core is compared with.

It imports nothing from the package and follows the form of the equations rather than speed: graphs are dense matrices
and loops are loops. Equations have the numbers of the survey's source. If the survey leaves something open (ties,
duplicates, clipping), the convention is umap-learn's and the docstring says so.

    graph     eq. 1-4 and 18, 19    fuzzy and entropic graphs
    umap      eq. 5-15              kernel, costs, gradients, Algorithm 1
    methods   eq. 20-23 and 30-35   t-SNE, LargeVis, densMAP, output metrics
    losses    eq. 16, 17, 23-29     theory and analysis of the costs (import ``reference.losses``)
"""

from reference.graph import SMOOTH_K_TOLERANCE as SMOOTH_K_TOLERANCE
from reference.graph import conditional_memberships as conditional_memberships
from reference.graph import entropic_conditionals as entropic_conditionals
from reference.graph import exact_neighbors as exact_neighbors
from reference.graph import fuzzy_graph as fuzzy_graph
from reference.graph import gaussian_conditionals as gaussian_conditionals
from reference.graph import mean_probabilities as mean_probabilities
from reference.graph import membership_sum as membership_sum
from reference.graph import nearest_distances as nearest_distances
from reference.graph import perplexity_scale as perplexity_scale
from reference.graph import smooth_scale as smooth_scale
from reference.graph import smooth_scales as smooth_scales
from reference.graph import symmetrize as symmetrize
from reference.methods import correlation as correlation
from reference.methods import correlation_gradient as correlation_gradient
from reference.methods import densmap_cost as densmap_cost
from reference.methods import embedded_radius as embedded_radius
from reference.methods import kl_divergence as kl_divergence
from reference.methods import kl_gradient as kl_gradient
from reference.methods import largevis_attract as largevis_attract
from reference.methods import largevis_cost as largevis_cost
from reference.methods import largevis_repel as largevis_repel
from reference.methods import local_radius as local_radius
from reference.methods import output_distance as output_distance
from reference.methods import power_law as power_law
from reference.methods import student_probabilities as student_probabilities
from reference.umap import CLIP as CLIP
from reference.umap import EPS as EPS
from reference.umap import algorithm1_epoch as algorithm1_epoch
from reference.umap import attract_coefficient as attract_coefficient
from reference.umap import attract_cost as attract_cost
from reference.umap import attract_gradient as attract_gradient
from reference.umap import attract_gradient_by_chain_rule as attract_gradient_by_chain_rule
from reference.umap import cross_entropy as cross_entropy
from reference.umap import fired_pairs as fired_pairs
from reference.umap import fit_ab as fit_ab
from reference.umap import kernel as kernel
from reference.umap import learning_rate_after as learning_rate_after
from reference.umap import reduced_cross_entropy as reduced_cross_entropy
from reference.umap import reduced_cross_entropy_by_pairs as reduced_cross_entropy_by_pairs
from reference.umap import repel_coefficient as repel_coefficient
from reference.umap import repel_cost as repel_cost
from reference.umap import repel_gradient as repel_gradient
from reference.umap import repel_gradient_by_chain_rule as repel_gradient_by_chain_rule
from reference.umap import row_owned_epoch as row_owned_epoch
from reference.umap import squared_distances as squared_distances
