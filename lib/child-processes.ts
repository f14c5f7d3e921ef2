/**
 * A Node.js option for every process of ours that handles audio. Audio buffers lie outside V8's heap but count towards its limits. With
 * the default young generation of 16 MB, V8 marks the whole heap to free these buffers long before the young generation is full: 45 times
 * in 500 phrases, against 6 times with this option. A small young generation is collected often and cheaply, and its buffers with it.
 * The server image sets the same option in `NODE_OPTIONS`.
 */
export const smallSemiSpace = "--max-semi-space-size=1";
