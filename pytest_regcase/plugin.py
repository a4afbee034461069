"""Options, markers: the only module that a plain pytest run imports."""
