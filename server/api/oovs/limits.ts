/** Words of one answer of `GET /v1/oovs`. */
export const wordLimits = { usual: 1_000, most: 10_000 };
