/** The default and the highest number of words in one response of `GET /v1/oovs`. */
export const wordLimits = { usual: 1_000, most: 10_000 };
