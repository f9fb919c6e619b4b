"""Estimators with scikit-learn's interface; each composes the parts and holds no loop of its own."""
