import { Failure } from "../../contract/errors.ts";
import type { ApiKey } from "../../store/keys/key.ts";
import { toFailure } from "../respond/problems.ts";

/** The identity of a client. An API key can be revoked, and a session can end, while the socket is open. */
export interface SocketIdentity {
  /** The API key at the time of the upgrade or of the first message. */
  readonly apiKey: ApiKey;
  /**
   * Authenticates the client again. Each synthesis calls this method before it starts.
   * @returns the current API key, whose limits may have changed.
   * @throws RefusedCredential if the server would now reject the upgrade; Failure if the key store is
   * unavailable.
   */
  verify(): Promise<ApiKey>;
}

/** A failed authentication of a client whose socket is open. */
export class RefusedCredential extends Failure {
  /** The reason in the close frame: the status and the text of the response to a rejected upgrade. */
  readonly closeReason: string;

  constructor({ code, message }: Failure, closeReason: string) {
    super(code, message);
    this.name = "RefusedCredential";
    this.closeReason = closeReason;
  }
}

/**
 * Creates the identity of a client.
 * @param authenticate authenticates the client in the same way as the upgrade.
 * @param textOf returns the text of the response to an upgrade that is rejected with this failure.
 */
export function socketIdentity(
  apiKey: ApiKey,
  authenticate: () => Promise<ApiKey>,
  textOf: (failure: Failure) => string,
): SocketIdentity {
  return {
    apiKey,
    async verify() {
      try {
        return await authenticate();
      } catch (error) {
        const failure = toFailure(error);
        const isRefused = failure.status === 401 || failure.status === 403;
        throw isRefused ? new RefusedCredential(failure, `${failure.status}: ${textOf(failure)}`) : failure;
      }
    },
  };
}
