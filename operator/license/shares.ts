/** The GPUs and streams that are in use under a license. */
export interface LicenseUse {
  readonly gpus: number;
  readonly streams: number;
}

interface Share {
  readonly license: string;
  readonly use: LicenseUse;
  /** Whether the TtsDeployment requests more than the license allows it. */
  readonly isShort: boolean;
}

const nothing: LicenseUse = { gpus: 0, streams: 0 };

/**
 * Records how much of each license each TtsDeployment uses. The limits of a license apply to the whole
 * cluster, and TtsDeployments with the same license are reconciled concurrently. The capacity is recorded
 * before the pods are written, so that it is never allocated twice.
 */
export class LicenseAllocations {
  /** The shares, by key of the TtsDeployment. */
  readonly #shares = new Map<string, Share>();
  /** The total use, by ID of the license (`jti`). */
  readonly #totals = new Map<string, LicenseUse>();
  readonly #onFreed: (keys: readonly string[]) => void;

  /** `onFreed` is called with the keys of the TtsDeployments that may now get more capacity. */
  constructor(onFreed: (keys: readonly string[]) => void = () => undefined) {
    this.#onFreed = onFreed;
  }

  /** Returns the use of a license by all other TtsDeployments. */
  elsewhere(license: string, key: string): LicenseUse {
    const share = this.#shares.get(key);
    const total = this.#totals.get(license) ?? nothing;
    return share?.license === license ? minus(total, share.use) : total;
  }

  take(key: string, share: Share): void {
    const before = this.#replace(key, share);
    if (before === undefined) return;
    const sameLicense = before.license === share.license;
    if (!sameLicense || isLess(share.use, before.use)) this.#reportFreed(before.license, key);
  }

  /**
   * Increases the share of a TtsDeployment. If the license does not have enough capacity left, it changes
   * nothing and returns false.
   */
  grow(key: string, more: LicenseUse, limits: LicenseUse): boolean {
    const share = this.#shares.get(key);
    if (share === undefined) return true;
    const total = this.#totals.get(share.license) ?? nothing;
    if (isLess(limits, plus(total, more))) return false;
    this.#replace(key, { ...share, use: plus(share.use, more) });
    return true;
  }

  /** Frees the share of a TtsDeployment that was deleted, or that needs no license. */
  forget(key: string): void {
    const before = this.#replace(key, undefined);
    if (before !== undefined) this.#reportFreed(before.license, key);
  }

  #replace(key: string, share: Share | undefined): Share | undefined {
    const before = this.#shares.get(key);
    if (before !== undefined) this.#add(before.license, minus(nothing, before.use));
    this.#shares.delete(key);
    if (share === undefined) return before;
    this.#shares.set(key, share);
    this.#add(share.license, share.use);
    return before;
  }

  #add(license: string, use: LicenseUse): void {
    const sum = plus(this.#totals.get(license) ?? nothing, use);
    if (sum.gpus === 0 && sum.streams === 0) this.#totals.delete(license);
    else this.#totals.set(license, sum);
  }

  #reportFreed(license: string, by: string): void {
    const waiting = [...this.#shares].filter(
      ([key, share]) => key !== by && share.isShort && share.license === license,
    );
    if (waiting.length > 0) this.#onFreed(waiting.map(([key]) => key));
  }
}

function plus(a: LicenseUse, b: LicenseUse): LicenseUse {
  return { gpus: a.gpus + b.gpus, streams: a.streams + b.streams };
}

function minus(a: LicenseUse, b: LicenseUse): LicenseUse {
  return { gpus: a.gpus - b.gpus, streams: a.streams - b.streams };
}

function isLess(a: LicenseUse, than: LicenseUse): boolean {
  return a.gpus < than.gpus || a.streams < than.streams;
}
