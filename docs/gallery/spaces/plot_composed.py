"""
Several views of the same rows
==============================

Penguins have measurements and categories, which no single metric compares well. Fit one model to each view and combine
them: ``a * b`` keeps rows together that are close in both views, ``a + b`` in one of them, ``a - b`` only in the first.
"""

# %%
import matplotlib.pyplot as plt
import pandas as pd
from palmerpenguins import load_penguins

import vicinal

penguins = load_penguins().dropna().reset_index(drop=True)
columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
measures = (penguins[columns] - penguins[columns].mean()) / penguins[columns].std()
categories = pd.get_dummies(penguins[["island", "sex"]]).astype(float)

body = vicinal.UMAP(random_state=42).fit(measures)
place = vicinal.UMAP(metric="dice", n_neighbors=60, random_state=42).fit(categories)
views = {
    "measurements": body,
    "island and sex": place,
    "measurements * island and sex": body * place,
    "measurements + island and sex": body + place,
}
vicinal.plot.compare(views, penguins.species + ", " + penguins.sex, align=False)
plt.show()

# %%
# The measurements alone separate one species from the two others, and males from females. The islands add what the
# bodies do not show.
