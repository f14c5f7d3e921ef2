import { createHash } from "node:crypto";
import type { Clock } from "../../lib/clock.ts";
import { LruCache } from "../../lib/lru-cache.ts";
import type { ClusterClient } from "../cluster/client.ts";
import type { KubernetesObject } from "../facts/kubernetes-object.ts";

/** The HTTP status for a client of the metrics. 503 means that too many other clients are being reviewed. */
export type MetricsAccess = 200 | 401 | 403 | 503;

/** The time for which a decision is reused, so that a scrape needs no requests to the API server. */
const reusedMs = { 200: 60_000, 401: 10_000, 403: 10_000 } as const;
const mostRemembered = 100;
/** The most reviews at a time, so that clients without rights cannot overload the API server. */
const mostReviews = 8;

interface Review {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly user?: { username?: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> };
    readonly allowed?: boolean;
  };
}

/**
 * Decides which clients may read the metrics, as controller-runtime does: the API server verifies the bearer token
 * (TokenReview), and the user needs the right to `get` the path (SubjectAccessReview).
 */
export class MetricsAuthorizer {
  readonly #client: Pick<ClusterClient, "create">;
  readonly #clock: Clock;
  /** The decisions, by digest of the token. */
  readonly #known = new LruCache<string, { readonly access: MetricsAccess; readonly untilMs: number }>(
    mostRemembered,
  );
  #reviews = 0;

  constructor(client: Pick<ClusterClient, "create">, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** @throws Error if the API server cannot decide. */
  async accessOf(authorization: string | undefined, path: string): Promise<MetricsAccess> {
    const [, token] = /^Bearer ([A-Za-z0-9._~+/=-]{1,16384})$/i.exec(authorization ?? "") ?? [];
    if (token === undefined) return 401;
    const key = createHash("sha256").update(`${path} ${token}`).digest("base64");
    const known = this.#known.get(key);
    if (known !== undefined && this.#clock.nowMs() < known.untilMs) return known.access;
    if (this.#reviews >= mostReviews) return 503;
    this.#reviews += 1;
    try {
      const access = await this.#review(token, path);
      this.#known.set(key, { access, untilMs: this.#clock.nowMs() + reusedMs[access] });
      return access;
    } finally {
      this.#reviews -= 1;
    }
  }

  async #review(token: string, path: string): Promise<200 | 401 | 403> {
    const { authenticated, user } = await this.#post("TokenReview", "authentication.k8s.io/v1", { token });
    if (authenticated !== true || user?.username === undefined) return 401;
    const { username, ...identity } = user;
    const { allowed } = await this.#post("SubjectAccessReview", "authorization.k8s.io/v1", {
      user: username,
      ...identity,
      nonResourceAttributes: { path, verb: "get" },
    });
    return allowed === true ? 200 : 403;
  }

  async #post(kind: string, apiVersion: string, spec: object): Promise<NonNullable<Review["status"]>> {
    const review = { apiVersion, kind, metadata: {}, spec } as unknown as KubernetesObject;
    const { status = {} } = (await this.#client.create(review)) as Review;
    return status;
  }
}
