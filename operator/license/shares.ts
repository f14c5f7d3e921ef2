/** The GPUs and streams in use under a license. */
export interface LicenseUse {
  readonly gpus: number;
  readonly streams: number;
}

interface Share {
  readonly license: string;
  readonly use: LicenseUse;
  /** Whether the TtsDeployment requests more than it got. */
  readonly isShort: boolean;
}

const nothing: LicenseUse = { gpus: 0, streams: 0 };

/**
 * The use of each license by each TtsDeployment. The limits of a license apply to the whole cluster, and TtsDeployments that share it are
 * reconciled concurrently. A grant is recorded here before the pods are written, so that it is never given twice.
 */
export class LicenseAllocations {
  /** By key of the TtsDeployment. */
  readonly #shares = new Map<string, Share>();
  /** By license (`jti`). */
  readonly #totals = new Map<string, LicenseUse>();
  readonly #onFreed: (keys: readonly string[]) => void;

  /** @param onFreed is called with the keys of the TtsDeployments that may now get more */
  constructor(onFreed: (keys: readonly string[]) => void = () => undefined) {
    this.#onFreed = onFreed;
  }

  /** The use of a license by all other TtsDeployments. */
  elsewhere(license: string, key: string): LicenseUse {
    const own = this.#shares.get(key);
    const total = this.#totals.get(license) ?? nothing;
    return own?.license === license ? minus(total, own.use) : total;
  }

  take(key: string, share: Share): void {
    const before = this.#replace(key, share);
    if (before === undefined) return;
    const sameLicense = before.license === share.license;
    if (!sameLicense || isLess(share.use, before.use)) this.#reportFreed(before.license, key);
  }

  /** Increases the share of a TtsDeployment. Returns false and changes nothing if the license does not have that much left. */
  grow(key: string, more: LicenseUse, limits: LicenseUse): boolean {
    const share = this.#shares.get(key);
    if (share === undefined) return true;
    const total = this.#totals.get(share.license) ?? nothing;
    if (isLess(limits, plus(total, more))) return false;
    this.#replace(key, { ...share, use: plus(share.use, more) });
    return true;
  }

  /** Frees the share of a deleted TtsDeployment. */
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
