"""What a project says of itself: its rules, its hooks, who works in it and who owns what."""
