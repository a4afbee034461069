"""One kind of fault each."""
