import sys

from vicinal.cli import main

sys.exit(main())
