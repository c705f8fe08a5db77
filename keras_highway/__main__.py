"""`python -m keras_highway` is the command `keras-highway`."""

import sys

from keras_highway.cli import main

sys.exit(main())
