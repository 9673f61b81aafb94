"""The classifier is taught and measured: labelled questions, training, thresholds, the report of an evaluation."""
