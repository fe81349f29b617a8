"""The measures of mode seed: one file a measure, `interface` what a measure is, `evaluating` how they are computed."""
