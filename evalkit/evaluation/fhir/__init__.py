"""FHIR R4: ground truth, fields and open cases as resources, and reading back."""
