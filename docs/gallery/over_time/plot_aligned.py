"""
Countries over time: aligned maps
=================================

142 countries in 1952, 1957, ... 2007: life expectancy, population and income (Gapminder). One map per year, aligned so
that a country keeps its place unless its data changes.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from gallery_data import load_countries

import vicinal

years = [1952, 1962, 1972, 1982, 1992, 2002, 2007]
table = load_countries()
table = table.assign(income=np.log(table.gdpPercap), people=np.log(table["pop"]))
table = table[table.year.isin(years)].sort_values(["year", "country"])
numbers = table[["lifeExp", "income", "people"]]
scaled = (numbers - numbers.mean()) / numbers.std()
slices = [scaled[table.year == year].to_numpy() for year in years]
continents = table[table.year == years[0]].continent.to_numpy()
countries = list(table[table.year == years[0]].country)

# %%
# ``relations`` says which row of a slice is which row of the next one. Here the countries are the same in every year.
same = {row: row for row in range(len(countries))}
model = vicinal.AlignedUMAP(n_neighbors=20, alignment_regularisation=0.05, random_state=42)
model.fit(slices, relations=[same] * (len(years) - 1))

figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
for ax, index in zip(axes, (0, 3, 6), strict=True):
    vicinal.plot.points(model.embeddings_[index], continents, ax=ax, title=str(years[index]), legend=index == 6)
plt.show()

# %%
# The paths of five countries through the seven maps:
figure, ax = plt.subplots(figsize=(7, 6), layout="constrained")
ax.scatter(*model.embeddings_[-1].T, s=8, color="0.85")
for country, color in zip(("China", "India", "Norway", "Rwanda", "Brazil"), vicinal.plot.palette(5), strict=True):
    way = np.array([places[countries.index(country)] for places in model.embeddings_])
    ax.plot(*way.T, "-", color=color, lw=1.5)
    ax.plot(*way[-1], "o", color=color)
    ax.annotate(country, way[-1], textcoords="offset points", xytext=(5, 3), fontsize=9)
ax.set(xticks=[], yticks=[], title="1952 to 2007; the dot is 2007")
plt.show()
