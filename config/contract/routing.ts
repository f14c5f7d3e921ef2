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
  /** Share of new requests from 0 to 100. With 0 the pool receives no new requests. */
  readonly weight: number;
  /** True if the pool intentionally has no replicas. The pool then counts as reachable. */
  readonly idle: boolean;
  /** True if the pool is scaled to zero, so that a request may wait for its first replica. */
  readonly wakes?: boolean;
  /** Present for a canary: the label `revision` of its metrics (`attemptLabel`). */
  readonly revision?: string;
}

/**
 * Settings that the API tier applies while it runs. The operator writes them to a ConfigMap that API pods
 * watch. Outside Kubernetes they are a file.
 */
export interface RoutingTable {
  readonly version: 1;
  readonly profile: Profile;
  readonly models: Partial<Record<ModelId, readonly Route[]>>;
  /**
   * False if no license is required. It has an effect only if no license key is trusted. If it is absent, as
   * in tables of earlier operators, a license is required.
   */
  readonly licenseRequired?: boolean;
  /**
   * Time at which the license became missing or invalid (RFC 3339). It is absent while the license is valid,
   * and after the license expired.
   */
  readonly licenseFailedAt?: string;
  /**
   * Limits of the last valid license, which apply during the grace period. Present together with
   * `licenseFailedAt`.
   */
  readonly lastLicense?: { readonly models: readonly string[]; readonly graceDays: number };
  /**
   * The issuer's last response (compact JWS), or the time since which the first response is pending (RFC
   * 3339). Present with online checks.
   */
  readonly licenseCheck?: { readonly answer?: string; readonly since?: string };
}
