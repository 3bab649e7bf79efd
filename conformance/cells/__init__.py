"""Where cases run: cells, selectors, matrices, releases, locks and provisioned environments."""
