package org.apache.spark.sql.sieve.statements

import java.nio.{ByteBuffer, ByteOrder}
import org.apache.spark.sql.sieve.predicate.Grams

/**
 * The signature of texts: an array of bits, in which each long gram of the texts sets one bit. A gram's bit is the
 * number in the upper bits of the gram's hash. If a text contains a part, then the bits of all grams in the part are
 * set.
 *
 * Source: Faloutsos and Christodoulakis, "Signature Files" (superimposed coding).
 *
 * @param bits the binary logarithm of the number of bits
 */
private class Signature(bits: Int) {
  private val words = new Array[Long](1 << (bits - 6))

  def add(text: Array[Byte]): Unit = {
    var (gram, k) = (0L, 0)
    while (k < text.length) {
      gram = gram << 8 | text(k) & 0xff
      k += 1
      if (k >= Grams.longBytes) {
        val bit = Grams.hash(gram) >>> (32 - bits)
        words(bit >>> 6) |= 1L << bit
      }
    }
  }

  /** Bit b of the signature is bit `b % 8` of the byte `b / 8`. */
  def bytes: Array[Byte] = Signature.bytes(words)

  /**
   * The signature with fewer bits, if few bits are set. A fold replaces the bits 2b and 2b + 1 by their disjunction, which
   * is the bit b of the smaller signature. As long as at most a quarter of the bits is set, the signature is folded.
   */
  def folded: Array[Byte] = {
    var now = words
    while (now.length > Signature.least && now.map(java.lang.Long.bitCount(_).toLong).sum * 4 <= now.length * 64L) {
      now = Array.tabulate(now.length / 2)(k => Signature.half(now(2 * k)) | Signature.half(now(2 * k + 1)) << 32)
    }
    Signature.bytes(now)
  }
}

private object Signature {
  /** The least number of words in a signature. `SignaturePieces` divides a signature into pieces of whole bytes. */
  private val least = 8

  /** Joins each pair of neighbouring bits by OR. The result has 32 bits. */
  private def half(word: Long): Long = {
    var x = (word | word >>> 1) & 0x5555555555555555L
    x = (x | x >>> 1) & 0x3333333333333333L
    x = (x | x >>> 2) & 0x0F0F0F0F0F0F0F0FL
    x = (x | x >>> 4) & 0x00FF00FF00FF00FFL
    x = (x | x >>> 8) & 0x0000FFFF0000FFFFL
    (x | x >>> 16) & 0xFFFFFFFFL
  }

  private def bytes(words: Array[Long]): Array[Byte] = {
    val buffer = ByteBuffer.allocate(8 * words.length).order(ByteOrder.LITTLE_ENDIAN)
    buffer.asLongBuffer.put(words)
    buffer.array
  }
}
