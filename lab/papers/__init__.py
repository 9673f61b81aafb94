"""Rankings of documents, measured: test collections (`data`), measures (`measures`), weights by coordinate search
(`tune`), ablations and their reports (`ablation`, `report`)."""
