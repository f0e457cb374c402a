"""What every test needs: the references on the path and no deadline for a first compilation."""

import sys
from pathlib import Path

from hypothesis import settings

# Last on the path, so that an installed fastshuffle comes before the one in this checkout.
sys.path.append(str(Path(__file__).parents[1]))

settings.register_profile("fastshuffle", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("fastshuffle")
