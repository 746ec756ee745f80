/** What the two books can disagree about. */
export const FINDING_KINDS = [
  'orphaned_charge',
  'uncharged_payment',
  'duplicate_payment',
  'amount_mismatch',
  'refund_mismatch',
  'abandoned_draft',
  'refund_unfinished',
  'cancelled_charge',
] as const;

/** One of `FINDING_KINDS`. */
export type FindingKind = (typeof FINDING_KINDS)[number];

/** An amount that the card network holds for us. One that was declined is none. */
export interface Charge {
  readonly authorizationId: string;
  /** The id of the payment that it was asked for. */
  readonly reference: string;
  /** The derived key that it was asked for under. */
  readonly requestId: string;
  /** In the smallest unit of the currency. */
  readonly amountMinor: bigint;
  readonly currency: string;
  /** What was given back of it. */
  readonly refundedMinor: bigint;
  /** By the clock of the network, milliseconds since 1970. */
  readonly createdAtMs: number;
}

/** A payment, as far as a finding tells of it. */
export interface FoundPayment {
  readonly paymentId: string;
  readonly scope: string;
  readonly orderId: string;
  readonly authorizationId: string;
  readonly amountMinor: bigint;
  readonly currency: string;
}

/** A payment that was begun and not made, as far as a finding tells of it. */
export interface FoundDraft {
  /** The id that the payment would have had. */
  readonly paymentId: string;
  readonly scope: string;
  readonly orderId: string;
  readonly amountMinor: bigint;
  readonly currency: string;
  /** The key of the request that made it. */
  readonly requestId: string;
}

/** A refund that was begun and is not noted as made, as far as a finding tells of it. */
export interface FoundRefund {
  readonly refundId: string;
  readonly paymentId: string;
  readonly scope: string;
  /** Of its payment; undefined where that is gone. */
  readonly orderId: string | undefined;
  readonly authorizationId: string | undefined;
  readonly amountMinor: bigint;
  readonly currency: string;
  /** The key of the request that made it, or the one it was given where that takes none. */
  readonly requestId: string;
  /** Since it was reserved, by the database clock. */
  readonly ageMs: number;
}

/** Where a request stands that has left a draft or a reserved refund; `none` where nothing is recorded of it any more. */
export type LeftRequest = 'none' | 'claimed' | 'parked' | 'completed' | 'expired';

/** Something that the two books disagree about, or that ours alone can't be right about. */
export type Finding =
  /** The network holds money that none of our payments stands for. */
  | { readonly kind: 'orphaned_charge'; readonly charge: Charge }
  /** A live payment for which the network holds nothing. */
  | { readonly kind: 'uncharged_payment'; readonly payment: FoundPayment }
  /** A live and charged payment of an order that has an older one. */
  | {
      readonly kind: 'duplicate_payment';
      readonly payment: FoundPayment;
      readonly charge: Charge;
      readonly keptPaymentId: string;
    }
  /** The network holds another amount than the payment says. */
  | { readonly kind: 'amount_mismatch'; readonly payment: FoundPayment; readonly charge: Charge }
  /** The network gave back less than was refunded here, or more than was asked for here. */
  | {
      readonly kind: 'refund_mismatch';
      readonly payment: FoundPayment;
      readonly charge: Charge;
      /** Refunds of ours that are done. */
      readonly doneMinor: bigint;
      /** With those that are under way. */
      readonly askedMinor: bigint;
    }
  /** A draft that the network holds nothing for and nobody goes on with. While it stands, its order can't be paid. */
  | { readonly kind: 'abandoned_draft'; readonly draft: FoundDraft; readonly request: LeftRequest }
  /** A refund that is reserved, so that its amount can't be refunded again, and nobody goes on with it. */
  | { readonly kind: 'refund_unfinished'; readonly refund: FoundRefund; readonly request: LeftRequest }
  /** A cancelled payment of which the network holds something that nobody has asked back. */
  | { readonly kind: 'cancelled_charge'; readonly payment: FoundPayment; readonly charge: Charge };

/** What became of a finding. */
export type Outcome =
  /** It was only looked for. */
  | { readonly kind: 'found' }
  | { readonly kind: 'repaired'; readonly how: string }
  /** At the repair it was no longer so: somebody else has ended it. */
  | { readonly kind: 'gone' }
  /** It waits for a person, or for another run. */
  | { readonly kind: 'left'; readonly why: string };

/** A finding and what became of it. */
export interface ReportedFinding {
  readonly finding: Finding;
  readonly outcome: Outcome;
}

/** Something that the books disagree about and that may be on its way: nothing is done about it. */
export interface UnderWay {
  readonly subject: 'charge' | 'payment' | 'draft' | 'refund';
  /** Of the authorization, of the refund, or of the payment that there is or would be. */
  readonly id: string;
  /** `young`: made just now. `claimed`: its request is half finished, and a retry goes on with it. */
  readonly why: 'young' | 'claimed';
}

/** What a reconciliation found and did. */
export interface Report {
  readonly since: Date;
  /** Whether it was to repair what it finds. */
  readonly repair: boolean;
  /** Payments whose charge the network holds. */
  readonly agreed: number;
  readonly underWay: readonly UnderWay[];
  readonly findings: readonly ReportedFinding[];
}

/** Whether anything is left that somebody has to look at. */
export function needsSomebody({ findings }: Report): boolean {
  return findings.some(({ outcome }) => outcome.kind === 'found' || outcome.kind === 'left');
}
