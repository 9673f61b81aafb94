"""The page that people try, demonstrate and debug the mesh with: static files, examples and the evaluator's reports."""
