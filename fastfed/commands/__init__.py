"""What several commands share, and the commands that answer questions about a sweep's folder."""
