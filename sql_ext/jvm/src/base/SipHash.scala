package org.apache.spark.sql.sieve.base

import java.lang.Long.rotateLeft
import java.nio.{ByteBuffer, ByteOrder}

/** A hash of 128 bits. */
final case class Hash(high: Long, low: Long)

/**
 * The hash function SipHash-2-4 of Aumasson and Bernstein, with hashes of 128 bits. Without the secret key, nobody can
 * find two texts with the same hash.
 */
final class SipHash(key: Hash) {
  private var v0 = key.low ^ 0x736f6d6570736575L
  private var v1 = key.high ^ 0x646f72616e646f6dL ^ 0xee
  private var v2 = key.low ^ 0x6c7967656e657261L
  private var v3 = key.high ^ 0x7465646279746573L

  def of(data: Array[Byte]): Hash = {
    val in = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN)
    while (in.remaining >= java.lang.Long.BYTES) word(in.getLong)
    var last = data.length.toLong << (java.lang.Long.SIZE - java.lang.Byte.SIZE)
    var shift = 0
    while (in.hasRemaining) {
      last |= (in.get & 0xffL) << shift
      shift += java.lang.Byte.SIZE
    }
    word(last)
    v2 ^= 0xee
    rounds(4)
    val low = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xdd
    rounds(4)
    Hash(v0 ^ v1 ^ v2 ^ v3, low)
  }

  private def word(m: Long): Unit = {
    v3 ^= m
    rounds(2)
    v0 ^= m
  }

  private def rounds(n: Int): Unit = {
    var left = n
    while (left > 0) {
      v0 += v1; v1 = rotateLeft(v1, 13) ^ v0; v0 = rotateLeft(v0, 32)
      v2 += v3; v3 = rotateLeft(v3, 16) ^ v2
      v0 += v3; v3 = rotateLeft(v3, 21) ^ v0
      v2 += v1; v1 = rotateLeft(v1, 17) ^ v2; v2 = rotateLeft(v2, 32)
      left -= 1
    }
  }
}
