"""Published figures, which the tables show beside ours."""

# The NumPy lesson: digits, width 64, Adam 1e-3, batch 64, 30 epochs, one seed. Keys are kind,
# depth and gate bias (None for plain networks); values are test accuracies.
LESSON_ACCURACY = {
    ("plain", 5, None): 0.9481,
    ("plain", 20, None): 0.3593,
    ("plain", 50, None): 0.1019,
    ("highway", 5, -2.0): 0.9630,
    ("highway", 20, -2.0): 0.9500,
    ("highway", 50, -2.0): 0.9426,
    ("highway", 50, 0.0): 0.1000,
    ("highway", 50, -5.0): 0.9611,
}
LESSON_SETTING = {"dataset": "digits", "width": 64, "epochs": 30}
