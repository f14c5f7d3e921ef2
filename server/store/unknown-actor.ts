/** The name of an unknown user in the audit log. Entries of earlier releases have it, so it does not change. */
export const unknownActor = "somebody";
