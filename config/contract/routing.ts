import type { ModelId, Profile } from "./models.ts";

/** One pool that serves a model. */
export interface Route {
  /** Name of the pool, as in `spec.models[].name`. */
  readonly pool: string;
  /**
   * Base URL of the pool's Service, for example `http://demo-mist:8080`. Inside Kubernetes the host is the
   * Service's name.
   */
  readonly service: string;
  /** Share of new requests from 0 to 100. With 0 the pool receives none. */
  readonly weight: number;
  /** The pool currently has no replicas by intention, and counts as reachable. */
  readonly idle: boolean;
  /** The pool is scaled to zero without demand, so a request may wait for its first replica. */
  readonly wakes?: boolean;
  /** Present for a canary: the label `revision` of its metrics (`attemptLabel`). */
  readonly revision?: string;
}

/**
 * The settings that the API tier follows while it runs. The operator writes them to a ConfigMap that API pods
 * watch; outside Kubernetes they are a file.
 */
export interface RoutingTable {
  readonly version: 1;
  readonly profile: Profile;
  readonly models: Partial<Record<ModelId, readonly Route[]>>;
  /**
   * False: no license is required. It has an effect only where no license key is trusted. Absent, also from
   * earlier operators: a license is required.
   */
  readonly licenseRequired?: boolean;
  /**
   * Time at which the license became missing or invalid (RFC 3339). Absent while it is valid, and after it
   * expired.
   */
  readonly licenseFailedAt?: string;
  /**
   * Limits of the last valid license, which apply during the grace period. Present together with
   * `licenseFailedAt`.
   */
  readonly lastLicense?: { readonly models: readonly string[]; readonly graceDays: number };
  /**
   * Present with online checks: the issuer's last response (compact JWS), or the time since when the first
   * one is pending (RFC 3339).
   */
  readonly licenseCheck?: { readonly answer?: string; readonly since?: string };
}
