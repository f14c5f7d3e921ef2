/**
 * The name of an unknown user in the audit log. Entries of earlier releases contain the name, so it must not
 * change.
 */
export const unknownActor = "somebody";
