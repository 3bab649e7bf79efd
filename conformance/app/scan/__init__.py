"""What an upgrade changes for a code base, found without running it."""
