"""Renderers: tables, figures, reports and notebooks."""
