"""The patient's folder, as in ``batch``."""

from pipeline.conftest import patient_folder

__all__ = ["patient_folder"]
