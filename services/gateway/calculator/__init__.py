"""A calculator for expressions that a language model wrote, with a language of its own and bounded by construction.

The text never reaches Python's own parser or evaluator. Every way through it is bounded before it is taken:

- Reading is one pass of one regular expression without nested repetition over at most `MAX_CHARS` ASCII characters.
- Parsing takes every token once; it stops at `MAX_NODES` nodes and `MAX_DEPTH` levels of brackets, signs and exponents.
- Evaluating visits every node once. Numbers are decimals of fixed precision whose magnitude is checked after each step
  and, for powers, before it: no operation costs more than one on `PRECISION` digits, and nothing loops or recurses on
  a value.

So an expression takes well under a millisecond or is refused with a `CalculatorError`. A process that a clock could
kill would add a second way to fail, and nothing to the bounds.
"""
