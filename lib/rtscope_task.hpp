/* SPDX-License-Identifier: MIT */
/*
 * rtscope_task.hpp - the library in C++17: what is opened is closed, and a task calls
 * what you give it. Header only, above rtscope_task.c and rtscope_handover.c.
 *
 *	rtscope::Report report;
 *	rtscope::App app({}, report);
 *	rtsc_config config = rtscope::periodic("control", 80, "1", 1'000'000);
 *	rtscope::Task task(app, config, [](const rtsc_cycle &cycle) { ... }, report);
 *
 *	app.go();
 *	task.join();
 *
 * What cannot be had throws rtscope::Error, whose report has each lack with its remedy.
 * In a task nothing here allocates or throws.
 */
#ifndef RTSCOPE_TASK_HPP
#define RTSCOPE_TASK_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "rtscope_handover.h"
#include "rtscope_task.h"

namespace rtscope
{

using Report = rtsc_report;

/* -errno of a call, and all that could not be had. */
class Error : public std::system_error
{
      public:
	Error(int err, const std::string &what, const Report &report)
		: std::system_error(-err, std::generic_category(), what),
		  report_(std::make_shared<const Report>(report))
	{
	}

	const Report &report() const noexcept { return *report_; }

      private:
	std::shared_ptr<const Report> report_;
};

/* All zero, which are the defaults. */
inline rtsc_config periodic(const char *name, int priority, const char *cpus,
			    std::int64_t period_ns) noexcept
{
	rtsc_config config{};

	config.name = name;
	config.policy = RTSC_POLICY_FIFO;
	config.priority = priority;
	config.cpus = cpus;
	config.period_ns = period_ns;
	return config;
}

/* Locked memory and the page of statistics; ends its tasks when it goes. */
class App
{
      public:
	App(const rtsc_setup &setup, Report &report)
	{
		rtsc *opened = nullptr;

		if (int err = rtsc_open(&opened, &setup, &report))
			throw Error(err, "rtsc_open", report);
		app_.reset(opened);
	}

	void go() noexcept { rtsc_go(app_.get()); }
	rtsc *get() const noexcept { return app_.get(); }

      private:
	struct Close {
		void operator()(rtsc *app) const noexcept { rtsc_close(app); }
	};

	std::unique_ptr<rtsc, Close> app_;
};

/*
 * A task that calls `cycle(const rtsc_cycle &)` in each cycle, until it is stopped; if
 * that returns bool, until it returns false. It is stopped and joined when it goes: it
 * has to go before its App.
 */
class Task
{
      public:
	template <typename Cycle>
	Task(App &app, const rtsc_config &config, Cycle cycle, Report &report)
		: work_(std::make_unique<Work>(Work{ calling(std::move(cycle)) }))
	{
		if (int err = rtsc_start(app.get(), &config, run, work_.get(), &task_,
					 &report))
			throw Error(err, "rtsc_start", report);
	}

	Task(const Task &) = delete;
	Task &operator=(const Task &) = delete;
	Task(Task &&other) noexcept
		: work_(std::move(other.work_)),
		  task_(std::exchange(other.task_, nullptr))
	{
	}
	Task &operator=(Task &&) = delete;

	~Task()
	{
		if (task_) {
			rtsc_stop(task_);
			rtsc_join(task_);
		}
	}

	void stop() noexcept { rtsc_stop(task_); }

	/* Throws std::system_error if an overrun or its descriptor ended it. The task has
	 * begun to end after app.go() alone. */
	void join()
	{
		if (int err = rtsc_join(task_))
			throw std::system_error(-err, std::generic_category(),
						"rtsc_join");
	}

	/* Nothing if it wrote all the while. */
	std::optional<rtsc_slot> statistics() const
	{
		std::optional<rtsc_slot> slot(std::in_place);

		if (!rtsc_snapshot(rtsc_statistics(task_), &*slot))
			slot.reset();
		return slot;
	}

	rtsc_task *get() const noexcept { return task_; }

      private:
	struct Work {
		std::function<bool(const rtsc_cycle &)> cycle;
	};

	template <typename Cycle>
	static std::function<bool(const rtsc_cycle &)> calling(Cycle cycle)
	{
		if constexpr (std::is_convertible_v<
				      std::invoke_result_t<Cycle, const rtsc_cycle &>,
				      bool>)
			return cycle;
		else
			return [cycle = std::move(cycle)](const rtsc_cycle &c) mutable {
				cycle(c);
				return true;
			};
	}

	static void run(rtsc_task *task, void *arg) noexcept
	{
		const Work &work = *static_cast<const Work *>(arg);
		rtsc_cycle cycle;

		while (rtsc_wait(task, &cycle) && work.cycle(cycle))
			;
	}

	std::unique_ptr<Work> work_; /* stays where it is when the task moves */
	rtsc_task *task_ = nullptr;
};

/* With priority inheritance; for std::lock_guard, std::unique_lock, std::scoped_lock. */
class Mutex
{
      public:
	Mutex()
	{
		if (int err = rtsc_mutex_init(&mutex_))
			throw std::system_error(-err, std::generic_category(),
						"rtsc_mutex_init");
	}
	~Mutex() { rtsc_mutex_destroy(&mutex_); }
	Mutex(const Mutex &) = delete;
	Mutex &operator=(const Mutex &) = delete;

	void lock()
	{
		if (int err = rtsc_mutex_lock(&mutex_))
			throw std::system_error(-err, std::generic_category(),
						"rtsc_mutex_lock");
	}
	bool try_lock() noexcept { return rtsc_mutex_trylock(&mutex_) == 0; }
	void unlock() noexcept { rtsc_mutex_unlock(&mutex_); }

      private:
	rtsc_mutex mutex_{};
};

/* The latest value, of one writer and `Readers` readers, each one thread. */
template <typename Value, unsigned int Readers = 1> class Latest
{
	static_assert(std::is_trivially_copyable_v<Value>, "it is copied as bytes");

      public:
	Latest() noexcept
	{
		rtsc_latest_init(&latest_, storage_.data(), storage_.size(),
				 sizeof(Value), Readers);
	}
	Latest(const Latest &) = delete;
	Latest &operator=(const Latest &) = delete;

	void write(const Value &value) noexcept { rtsc_latest_write(&latest_, &value); }

	/* The number of the value, from 1; 0 and nothing is copied before the first. */
	std::uint64_t read(Value &value, unsigned int reader = 0) noexcept
	{
		return rtsc_latest_read(&latest_, reader, &value);
	}

      private:
	std::array<char, RTSC_LATEST_BYTES(sizeof(Value), Readers)> storage_{};
	rtsc_latest latest_{};
};

/* A queue of one thread that pushes and one that pops. */
template <typename Record, std::size_t Records> class Queue
{
	static_assert(std::is_trivially_copyable_v<Record>, "it is copied as bytes");
	static_assert(Records > 0 && (Records & (Records - 1)) == 0, "a power of two");

      public:
	Queue() noexcept
	{
		rtsc_queue_init(&queue_, storage_.data(), storage_.size(),
				sizeof(Record));
	}
	Queue(const Queue &) = delete;
	Queue &operator=(const Queue &) = delete;

	bool push(const Record &record) noexcept
	{
		return rtsc_queue_push(&queue_, &record);
	}
	bool pop(Record &record) noexcept { return rtsc_queue_pop(&queue_, &record); }
	std::uint64_t dropped() const noexcept { return rtsc_queue_dropped(&queue_); }

      private:
	std::array<char, sizeof(Record) * Records> storage_{};
	rtsc_queue queue_{};
};

/* A log of one task; rtsc_log_print(log.get(), "took %d us", us) in it. */
class Log
{
      public:
	explicit Log(const rtsc_log_setup &setup = {})
	{
		rtsc_log *opened = nullptr;

		if (int err = rtsc_log_open(&opened, &setup))
			throw std::system_error(-err, std::generic_category(),
						"rtsc_log_open");
		log_.reset(opened);
	}

	rtsc_log *get() const noexcept { return log_.get(); }
	std::uint64_t dropped() const noexcept { return rtsc_log_dropped(get()); }

      private:
	struct Close {
		void operator()(rtsc_log *log) const noexcept { rtsc_log_close(log); }
	};

	std::unique_ptr<rtsc_log, Close> log_;
};

} // namespace rtscope

#endif
