"""FHIR R4: ground truth, fields and open cases as resources, and the ground truth read back from them."""
