import type { ModelId, Profile } from "./models.ts";

/** One pool that can speak a model. */
export interface Route {
  /** Name of the pool, as in `spec.models[].name`. */
  readonly pool: string;
  /** Base URL of its Service, as `http://demo-mist:8080`; inside Kubernetes the host is the Service's name. */
  readonly service: string;
  /** Share of new requests, 0..100; 0 takes none. */
  readonly weight: number;
  /** The pool is meant to have no replica now; it counts as reachable. */
  readonly idle: boolean;
  /** It sleeps at zero until it is asked for: a request may wait for its first replica. */
  readonly wakes?: boolean;
  /** Where the pool is a canary: what is measured of its pods is counted by it (`attemptLabel`). */
  readonly revision?: string;
}

/**
 * What the API tier must know and follow while it runs (design, part 1). The operator writes it to a ConfigMap
 * that API pods watch; outside Kubernetes it is a file.
 */
export interface RoutingTable {
  readonly version: 1;
  readonly profile: Profile;
  readonly models: Partial<Record<ModelId, readonly Route[]>>;
  /** When the license stopped being good without expiring (missing or invalid), RFC 3339; absent while it is good. */
  readonly licenseFailedAt?: string;
  /** What the last license that was good allowed, which also bounds what is served without one; present beside `licenseFailedAt`. */
  readonly lastLicense?: { readonly models: readonly string[]; readonly graceDays: number };
  /** Where the license's issuer is asked: what it last said (compact JWS), or since when an answer is awaited (RFC 3339). */
  readonly licenseCheck?: { readonly answer?: string; readonly since?: string };
}
