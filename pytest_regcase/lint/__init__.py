"""What a reader is to look at in case files: aids for a review, none of which proves a case harmless."""
