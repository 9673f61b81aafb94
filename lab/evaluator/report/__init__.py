"""Reports of runs: what they hold (`summary`), how it is drawn (`pictures`) and written (`markdown`)."""
