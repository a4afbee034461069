"""The parts of one attempt: its supplier and places, the watch over it, and the record that it ends in."""
