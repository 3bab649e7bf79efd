"""Worker processes: started, spoken to, and their messages put together."""
