"""Metadata of keras-highway; the build system and the tools are set up in pyproject.toml."""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(
    r'^__version__ = "(.+)"$', (HERE / "keras_highway" / "__init__.py").read_text(), re.MULTILINE
).group(1)

TENSORFLOW = ["tensorflow>=2.18"]
DATA = ["scikit-learn>=1.3", "tensorflow-datasets>=4.9.6", "importlib_resources", *TENSORFLOW]
CLI = ["rich>=13", "matplotlib>=3.8", *DATA]

setup(
    name="keras-highway",
    version=VERSION,
    description="Highway layers for Keras 3, which make very deep networks train",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    packages=find_packages(include=["keras_highway", "keras_highway.*"]),
    python_requires=">=3.11",
    install_requires=["keras>=3.10", "numpy>=1.26"],
    extras_require={
        "tensorflow": TENSORFLOW,
        "jax": ["jax"],
        "torch": ["torch"],
        "data": DATA,
        "cli": CLI,
        "test": [
            *CLI,
            "pytest>=8",
            "pytest-xdist>=3.6",
            "tensorboard",
            "jupytext>=1.16",
            "nbclient>=0.10",
            "ipykernel>=6",
        ],
    },
    entry_points={"console_scripts": ["keras-highway = keras_highway.cli:main"]},
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
