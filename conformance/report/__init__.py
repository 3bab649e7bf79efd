"""What a run says: summaries for people and machines. Pure, but for printing."""
