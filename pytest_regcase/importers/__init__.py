"""One foreign trial format each -> Trial; no importer knows another."""
