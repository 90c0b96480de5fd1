package org.apache.spark.sql.sieve.formats

import java.lang.reflect.{Field, InvocationTargetException, Method}

/** Calls methods and reads fields of objects whose classes the shim is not compiled against. */
object Reflection {
  /** Calls a public method without arguments. Takes less time than `call`. */
  def getter(of: AnyRef, method: String): AnyRef = of.getClass.getMethod(method).invoke(of)

  /** Calls a method of an object. The method need not be public, and a superclass may declare the method. */
  def call(of: AnyRef, name: String, arguments: AnyRef*): AnyRef = {
    val found = hierarchy(of.getClass).flatMap(_.getDeclaredMethods).find(fits(_, name, arguments))
      .orElse(of.getClass.getMethods.find(fits(_, name, arguments)))
      .getOrElse(throw new NoSuchMethodException(s"${of.getClass.getName}.$name"))
    found.setAccessible(true)
    try found.invoke(of, arguments: _*)
    catch { case e: InvocationTargetException => throw e.getCause }
  }

  /** True if an object's class or a superclass declares this method without parameters. */
  def has(of: AnyRef, name: String): Boolean = hierarchy(of.getClass).flatMap(_.getDeclaredMethods).exists(fits(_, name, Nil))

  /** Sets a field that an object's class or a superclass declares. */
  def set(of: AnyRef, name: String, value: AnyRef): Unit = found(of, name)
    .getOrElse(throw new NoSuchFieldException(s"${of.getClass.getName}.$name")).set(of, value)

  /**
   * The value of a field that an object's class or a superclass declares. Returns None if there is no such field, or if the
   * value is null.
   */
  def field(of: AnyRef, name: String): Option[AnyRef] = found(of, name).flatMap(field => Option(field.get(of)))

  private def found(of: AnyRef, name: String): Option[Field] = {
    val field = hierarchy(of.getClass).flatMap(_.getDeclaredFields).find(_.getName == name)
    field.foreach(_.setAccessible(true))
    field
  }

  def hierarchy(of: Class[_]): Iterator[Class[_]] = Iterator.iterate[Class[_]](of)(_.getSuperclass).takeWhile(_ != null)

  private def fits(method: Method, name: String, arguments: Seq[AnyRef]): Boolean =
    method.getName == name && method.getParameterCount == arguments.size && !method.isBridge &&
      method.getParameterTypes.zip(arguments).forall { case (kind, argument) =>
        kind.isInstance(argument)
      }
}
