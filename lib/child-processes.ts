/**
 * An option of Node for every process of ours that handles audio. Its buffers lie outside of V8's heap but count: with the usual nursery of
 * 16 MB, V8 marks the whole heap to free them long before the nursery is full (45 times in 500 phrases; with this one 6 times). A small nursery
 * is swept often and cheaply, and its buffers with it. The image has the same in `NODE_OPTIONS`.
 */
export const smallSemiSpace = "--max-semi-space-size=1";
