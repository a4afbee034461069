"""What is done to a case after it was written, in its file and in the ledger; and its story."""
