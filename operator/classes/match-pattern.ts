import type { Matching } from "./limited-fields.ts";

/** Compares values of a TtsDeployment with the patterns of a class. */

type Matcher = (value: string, pattern: string) => boolean;

export const matchers: { readonly [M in Matching]: Matcher } = {
  exact: (value, allowed) => value === allowed,
  name: (name, pattern) => (pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern),
  hostname: (hostname, pattern) =>
    hostname === pattern || (pattern.startsWith("*.") && hostname.endsWith(pattern.slice(1))),
  image: matchesImage,
  url: matchesUrl,
};

/**
 * Returns whether the image begins with the prefix, and continues with a new part of its name. A prefix that
 * is only a registry must be followed by a path: `registry.example.com:5000/x` does not match
 * `registry.example.com`, because the port selects another registry.
 */
function matchesImage(image: string, prefix: string): boolean {
  if (!image.startsWith(prefix)) return false;
  const rest = image.slice(prefix.length);
  if (prefix.endsWith("/") || rest.startsWith("/")) return true;
  return !isRegistry(prefix) && /^([:@][^/]*)?$/.test(rest);
}

/** The first part of an image is a registry if it contains a dot or a colon, or is `localhost`. */
function isRegistry(prefix: string): boolean {
  return !prefix.includes("/") && (/[.:]/.test(prefix) || prefix === "localhost");
}

/**
 * Matches a path that a program may resolve to a different path, such as `/allowed/../other` or `..%2fother`.
 */
export const unsafePath = "(^|[/])([.]|%2[eE]){1,2}([/?#]|$)|\\\\|%2[fF]|%5[cC]|%25";

function matchesUrl(url: string, prefix: string): boolean {
  if (new RegExp(unsafePath).test(url) || !url.startsWith(prefix)) return false;
  const rest = url.slice(prefix.length);
  if (rest === "" || prefix.endsWith("/") || rest.startsWith("/")) return true;
  if (/^https?:/.test(prefix)) return /^[?#]/.test(rest);
  return hasPath(prefix) && /^(@|:[^/]*$)/.test(rest);
}

/** Returns whether the prefix of a URL continues after its host, bucket or owner. */
function hasPath(prefix: string): boolean {
  return /^[a-z0-9]+:\/\/[^/]+\/./.test(prefix);
}
